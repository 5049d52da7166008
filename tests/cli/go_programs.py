"""Programs in Go, where Go is."""
from harness import *


def build_go(name, source, *flags):
    """A program of Go's; the same source and flags are built once."""
    go = shutil.which("go")
    if not go:
        raise Skip("no Go")
    out = path(name)
    if not os.path.exists(out):
        os.makedirs(path(name + ".d"), exist_ok=True)
        with open(path(name + ".d/main.go"), "w") as f:
            f.write(source)
        subprocess.run([go, "build", *flags, "-o", out, "main.go"], cwd=path(name + ".d"), check=True, capture_output=True,
                       env={**os.environ, "GO111MODULE": "off", "GOFLAGS": ""})
    return out
