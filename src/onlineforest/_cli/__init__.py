"""The command line. The only room that knows terminals."""
