"""What a run is, and what each event does to it. No rule is applied here."""
