"""What backedge sees itself: the files of a workspace, what is protected among them, and what an attempt changed.

Nothing here believes what an agent says or could have prepared: git's index and settings, new ignore rules, time stamps
that can be set, names that look like others. The rest of the program connects these parts to the engine.
"""
