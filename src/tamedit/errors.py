"""What a user can get wrong, said in one sentence: what, where, what to do."""


class UserError(Exception):
    """A mistake that the person at the keyboard can mend.

    The message is one sentence that names what was wrong, where (file, row, column, argument, value) and what to
    do about it. The command line prints it without a traceback and exits with code 2.
    """
