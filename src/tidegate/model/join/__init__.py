"""The join model of "Performance Modeling and Vertical Autoscaling of Stream Joins"."""
