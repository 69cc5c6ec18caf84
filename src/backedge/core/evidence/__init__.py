"""What backedge itself saw of attempts, and the rules that keep a verdict honest."""
