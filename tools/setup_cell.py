# Find the book's helpers: this cell is the same in every chapter.
import glob, importlib.util, os, subprocess, sys, zipfile
ADDRESS, TAG, HOME = "", "", "dataloader-book"
def find(key="helpers/settings.py"):
    return glob.glob(f"../{key}") + glob.glob(f"{HOME}*/{key}")
if not find() and not importlib.util.find_spec("data_gen"):
    if os.path.exists(f"{HOME}.zip"):
        zipfile.ZipFile(f"{HOME}.zip").extractall()
    elif ADDRESS and "COLAB_RELEASE_TAG" in os.environ:
        git = "git -c advice.detachedHead=false clone -q --depth 1"
        subprocess.run([*git.split(), "--branch", TAG, ADDRESS, HOME])
    if not find():
        raise ImportError(f"Put {HOME}.zip beside this notebook.")
sys.path[:0] = [os.path.abspath(f"{f}/../..") for f in find()[:1]]
from helpers.settings import use_start_method
use_start_method()
