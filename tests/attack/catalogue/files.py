"""Files that a program makes, changes, lists and locks."""

from __future__ import annotations

from .case import programs

FILES = {
    "data/cat/1.txt": "a cat",
    "data/dog/1.txt": "a dog",
    "config.json": '{"rate": 0.1}',
    "model.bin": "weights",
    "logs/old.log": "begun\n",
}

CASES = programs(
    "files",
    {
        "list": "import os\nprint(sorted(os.listdir()))",
        "walk": "import os\nfor folder, folders, files in sorted(os.walk('.')):\n    print(folder, sorted(folders), sorted(files))",
        "classes": "import os\nprint(sorted(entry.name for entry in os.scandir() if entry.is_dir()))",
        "glob": "from pathlib import Path\nprint(sorted(map(str, Path().rglob('*.json'))), sorted(map(str, Path().glob('**/'))))",
        "hidden": "from pathlib import Path\nprint(sorted(map(str, Path().glob('.*'))))",
        "size of all": "from pathlib import Path\nprint(sum(p.stat().st_size for p in Path().rglob('*') if p.is_file()))",
        "append": "open('logs/old.log', 'a').write('ended\\n')",
        "overwrite": "open('model.bin', 'w').write('new weights')",
        "in place": "f = open('model.bin', 'r+')\nf.seek(2)\nf.write('XX')",
        "truncate": "import os\nos.truncate('model.bin', 3)",
        "rename": "import os\nos.rename('model.bin', 'best.bin')",
        "replace": "import os\nopen('tmp', 'w').write('next')\nos.replace('tmp', 'model.bin')",
        "remove": "import os\nos.remove('model.bin')\nos.remove('data/cat/1.txt')\nos.rmdir('data/cat')",
        "remove all": "import shutil\nshutil.rmtree('data')",
        "remove itself": "import os\nos.remove(__file__)\nprint('gone')",
        "remove its folder": "import os, shutil\nfolder = os.getcwd()\nos.chdir('/')\nshutil.rmtree(folder)",
        "modes": "import os\nos.umask(0o077)\nopen('secret', 'w').close()\nos.chmod('model.bin', 0o640)\nos.mkdir('private', 0o711)",
        "times": "import os\nos.utime('model.bin', (1, 2))\nprint(os.stat('model.bin').st_mtime)",
        "times that it sees": "import os\nprint(os.stat('config.json').st_mtime, os.stat('data').st_mtime)",
        "links": "import os\nos.symlink('model.bin', 'latest')\nos.link('model.bin', 'again')\nprint(os.stat('model.bin').st_nlink, os.readlink('latest'))",
        "pipes": "import os, stat\nos.mkfifo('pipe')\nprint(stat.S_ISFIFO(os.stat('pipe').st_mode))",
        "a socket": "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('sock')\nprint('bound')",
        "locks": "import fcntl\nf = open('config.json')\nfcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\nprint('locked')",
        "extended attributes": "import os\ntry:\n    os.setxattr('model.bin', 'user.epoch', b'3')\n    print(os.listxattr('model.bin'))\nexcept OSError as error:\n    print(error.errno)",
        "sparse": "f = open('sparse', 'wb')\nf.seek(1 << 20)\nf.write(b'end')",
        "mapped": "import mmap\nf = open('model.bin', 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nm[0:2] = b'MM'\nm.flush()",
        "temporary": "import os, tempfile\nwith tempfile.TemporaryDirectory() as folder:\n    print(os.path.dirname(folder), os.listdir(folder))",
        "temporary and unnamed": "import tempfile\nwith tempfile.TemporaryFile() as f:\n    f.write(b'x')\n    print(f.tell())",
        "sqlite": "import sqlite3\nd = sqlite3.connect('runs.db')\nd.execute('create table t (a)')\nd.execute('insert into t values (1)')\nd.commit()\nprint(d.execute('select * from t').fetchall())",
        "pickles": "import pickle\npickle.dump({'a': [1, 2]}, open('state.pkl', 'wb'))\nprint(pickle.load(open('state.pkl', 'rb')))",
        "json": "import json\nd = json.load(open('config.json'))\nd['rate'] = 0.2\njson.dump(d, open('config.json', 'w'))",
        "csv": "import csv\nwith open('m.csv', 'w', newline='') as f:\n    csv.writer(f).writerows([[1, 2], [3, 4]])",
        "zip": "import shutil\nprint(shutil.make_archive('data', 'tar', 'data'))",
        "copies": "import shutil\nshutil.copytree('data', 'copy')\nshutil.copy2('model.bin', 'model2.bin')",
        "bytecode": "import sys\nsys.dont_write_bytecode = False\nsys.path.insert(0, 'lib')\nimport helper\nprint(helper.__cached__)",
        "a folder without rights": "import os\nos.mkdir('closed', 0)\nprint(os.getuid() == 0 or not os.access('closed', os.R_OK))",
        "its own log": "import logging\nlogging.basicConfig(filename='run.log', level='INFO', format='%(message)s')\nlogging.info('begun')",
        "somewhere else": "import os\nos.chdir('data')\nopen('made', 'w').write('here')\nprint(os.getcwd())",
        "an unstall folder of its own": "import os\nos.makedirs('unstall')\nopen('unstall/__init__.py', 'w').write('mine = 1')\nimport sys\nsys.path.insert(0, '.')\nprint(os.listdir('unstall'))",
        "names of all kinds": "for name in ('a b', 'ž', '-x', 'x\\ny', '*'):\n    open(name, 'w').write(name)",
        "file that stays open": "f = open('open.txt', 'w')\nf.write('buffered')",
        "unflushed at a hard exit": "import os\nf = open('open.txt', 'w')\nf.write('lost')\nos._exit(0)",
    },
    files={**FILES, "lib/helper.py": "value = 1\n"},
)
