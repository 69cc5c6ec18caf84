"""What people can read about runs, gathered from the journal and from the files beside it: the same for every command and
every page."""
