"""Runs ministack until standard input ends, so that it never outlives the tests that started it."""

import os
import runpy
import signal
import threading

leash = os.dup(0)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what the emulator starts must not hold the leash


def watch():
    while os.read(leash, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=watch, daemon=True).start()
runpy.run_module("ministack", run_name="__main__", alter_sys=True)
