"""The environment variable that makes torch run what checkpoint files contain.

Apart, because the doctor has to read it where torch does not work.
"""

UNSAFE_SWITCH = 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'


def is_on(value: str) -> bool:
    """Whether a value of the variable could be meant as "on"; torch takes 1, y, yes and true."""
    return value.strip().lower() not in ('', '0', 'n', 'no', 'false', 'off')
