"""The command line: one file per command, all listed in `app.py`.

Nothing here imports numpy or a room of this package but `errors` at the top of a file, so that
`tiebreak --help` answers at once; commands import what they need when they run.
"""
