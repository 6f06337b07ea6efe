#!/usr/bin/env python3
"""Kills a server while clients are connected, and stays connected: port.py HOST PORT PID SECONDS."""
import os
import signal
import socket
import sys
import time

host, port, pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
clients = [socket.create_connection((host, port)) for _ in range(8)]
for c in clients:
    c.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    if b" 200 " not in c.recv(1000):
        sys.exit("no answer")
os.kill(pid, signal.SIGKILL)
for c in clients:
    c.settimeout(10)
    try:
        c.recv(1000)
    except ConnectionResetError:
        pass
print("open", flush=True)
time.sleep(float(sys.argv[4]))
