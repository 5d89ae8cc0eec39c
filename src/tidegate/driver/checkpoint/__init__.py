"""What a run does with its checkpoint: enters it, commits to it, signs it and recovers."""
