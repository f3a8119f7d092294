# Types into an interactive bash on a terminal of its own and checks what it shows. Arguments: stasis, state directory.
import os, pty, select, sys, time

stasis, home = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
unread = b""
transcript = b""


def expect(text):
    """Reads up to and including the text."""
    global transcript, unread
    deadline = time.monotonic() + 30
    while text not in unread:
        if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
            sys.exit("expected %r, saw %r after\n%s" % (text, unread, transcript.decode(errors="replace")))
        unread += os.read(terminal, 4096)
    end = unread.index(text) + len(text)
    transcript += unread[:end]
    unread = unread[end:]


def type_in(text, expected):
    os.write(terminal, text)
    expect(expected)


type_in(b"PS1='pro''mpt '; bind 'set enable-bracketed-paste off'\n", b"prompt ")
type_in(b"%s restart %s/x.ckpt\n" % (stasis.encode(), home.encode()), b"ready")
type_in(b"hello\n", b"read hello")
type_in(b"\x03", b"interrupted")
type_in(b"raw\n", b"echo off")
type_in(b"\x1a", b"Stopped")
expect(b"prompt ")
type_in(b"stty -a | grep -o -- '-*echo '; echo do''ne\n", b"\necho \r\ndone")
type_in(b"fg\n", b"restart")
type_in(b"after fg\n", b"read after fg")
type_in(b"\x1a", b"Stopped")
expect(b"prompt ")
type_in(b"bg\n", b"&")
type_in(b"jobs; echo do''ne\n", b"done")
type_in(b"fg\n", b"restart")
type_in(b"in front again\n", b"read in front again")
type_in(b"quit\n", b"read quit")
expect(b"prompt ")
type_in(b"echo status $?\n", b"status 7")
type_in(b"exit\n", b"exit")
os.waitpid(child, 0)
