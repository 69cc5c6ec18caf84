"""What each event leads to, by what it is about."""
