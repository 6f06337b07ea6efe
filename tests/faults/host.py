"""A host of an emulated network that takes commands, as sshd does: what it runs is no child of who asks, and answers come over the network.

    host.py serve ADDRESS                  runs what comes, one shell each; ends with SIGTERM
    host.py run ADDRESS COMMAND...         the agent of a launcher: standard streams and the exit status are the command's"""
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys

PORT = 2222


def pump(pairs, until):
    """Copies each (from, write, end) until the one numbered `until` ends."""
    with selectors.PollSelector() as s:
        for n, (source, _, _) in enumerate(pairs):
            s.register(source, selectors.EVENT_READ, n)
        while True:
            for key, _ in s.select():
                _, write, end = pairs[key.data]
                data = os.read(key.fd, 65536)
                if data:
                    write(data)
                    continue
                s.unregister(key.fileobj)
                end()
                if key.data == until:
                    return


def write_all(fd):
    def write(data):
        while data:
            data = data[os.write(fd, data):]
    return write


def handle(connection):
    size = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))[0]
    command = connection.recv(size, socket.MSG_WAITALL).decode()
    p = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    pump([(connection.fileno(), write_all(p.stdin.fileno()), p.stdin.close), (p.stdout.fileno(), connection.sendall, lambda: None)], 1)
    status = p.wait()
    connection.sendall(b"\0status %d\n" % (status if status >= 0 else 128 - status))


def serve(address):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.create_server((address, PORT), reuse_port=False)
    print("listens", flush=True)
    while True:
        connection, _ = listening.accept()
        if os.fork():
            connection.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        try:
            handle(connection)
        except OSError:
            pass  # the other side is gone, as over a link that is down
        os._exit(0)


def run(address, command):
    """Processes of a test are known by a variable of their environment, on other hosts, too."""
    command = f"export TPC_RESTART={os.environ.get('TPC_RESTART', '')}; {command}"
    with socket.create_connection((address, PORT)) as c:
        c.sendall(struct.pack("!I", len(command.encode())) + command.encode())
        said = [b""]

        def take(data):
            said[0] += data
            shown, mark, rest = said[0].partition(b"\0status ")
            keep = 0 if mark else min(len(shown), 8)
            os.write(1, shown[:len(shown) - keep])
            said[0] = shown[len(shown) - keep:] + mark + rest

        pump([(0, c.sendall, lambda: c.shutdown(socket.SHUT_WR)), (c.fileno(), take, lambda: None)], 1)
        status = said[0].partition(b"\0status ")[2]
        sys.exit(int(status) if status else 255)


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    run(sys.argv[2], " ".join(sys.argv[3:]))
