"""From logical nodes to what the runtime executes: rules, lowering, explain."""
