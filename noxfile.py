"""The suite on the oldest and newest versions allowed, and on the forks: `make matrix`.

`.venv/bin/nox -s libraries` runs the page about other libraries.

Only one of them: `.venv/bin/nox -s newest`. Only some tests: `... -- tests/models`.
"""

import nox

nox.options.default_venv_backend = 'uv'
nox.options.reuse_venv = 'yes'


@nox.session(python='3.13')
def newest(session: nox.Session) -> None:
    """The versions that `make setup` installs."""
    run_suite(session, 'requirements/constraints.txt', 'export', 'track')


@nox.session(python='3.11')
def oldest(session: nox.Session) -> None:
    """The lower bounds of setup.py, with a torch that is too old to export."""
    run_suite(session, 'requirements/oldest.txt')


@nox.session(python='3.12')
def forks(session: nox.Session) -> None:
    """The maintained forks of the hosts, of MMEngine and of mmcv."""
    session.env['PTNT_HOSTS'] = 'onedl'
    run_suite(session, 'requirements/onedl.txt', 'export', 'track', 'rot')


@nox.session(python='3.13')
def libraries(session: nox.Session) -> None:
    """The page about other libraries, with the newest of each."""
    session.install('-c', 'requirements/constraints.txt', 'pip', 'setuptools')
    others = ('transformers', 'peft', 'segmentation-models-pytorch', 'torchvision')
    project = ('--no-build-isolation-package', 'ptnt_mm', '-e', '.[cls,start,dev]')
    session.install('-c', 'requirements/constraints.txt', *project, *others)
    session.run('python', '-m', 'pytest', 'tests/test_other_libraries.py', *session.posargs)


def run_suite(session: nox.Session, constraints: str, *more: str) -> None:
    """Install these versions, also of more extras, and run the suite or what follows `--` of it."""
    extras = ','.join(('det', 'seg', 'cls', 'start', 'vis', 'dev', *more))
    session.install('-c', constraints, 'pip', 'setuptools')
    # Only ours: where the build of onedl-mmcv finds torch, it compiles operators.
    project = ('--no-build-isolation-package', 'ptnt_mm', '-e', f'.[{extras}]')
    session.install('--compile-bytecode', '-c', constraints, *project)
    session.run('python', '-m', 'ptnt_mm', 'mmcv-ops', 'install')
    # As in `make test`: three tests at a time with a thread each.
    parallel = ('-n', '3', '--dist', 'worksteal')
    one_thread = {'OMP_NUM_THREADS': '1', 'OMP_WAIT_POLICY': 'passive'}
    session.run('python', '-m', 'pytest', *parallel, *session.posargs, env=one_thread)
