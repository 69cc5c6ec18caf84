"""The rules of stories: pure functions over values, texts and events."""
