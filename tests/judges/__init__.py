"""Tests of judges that cannot be fooled, and of the eyes on producers."""
