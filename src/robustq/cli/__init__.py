"""The command `robustq`: thin, what it does is done by the rooms below."""
