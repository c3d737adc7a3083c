# Shared by the set-up scripts.
mkdir -p var/log || { echo "tidegate: this folder cannot be written to. Check its owner and the free disk." >&2; exit 1; }
LOG=$PWD/var/log/install.log
JAVA=${JAVA_HOME:+$JAVA_HOME/bin/}java

say() { echo "tidegate: $*"; }
die() { echo "tidegate: $*" >&2; exit 1; }
logged() { "$@" >>"$LOG" 2>&1; }
last_line() { grep -v '^[[:space:]]*$' "$LOG" | tail -n 1 | cut -c1-200; }

need_disk_gib() {
    local free
    free=$(df -Pk . | awk 'NR == 2 {print int($4 / 1048576)}')
    [ "$free" -ge "$1" ] || die "Only $free GiB are free on this disk, and $1 GiB are needed. Free some, then run make again."
}

need_java() {
    local version
    version=$("$JAVA" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
    [ -n "$version" ] || die "Java was not found. Install Java 17 (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME to it."
    [ "$version" -ge 17 ] || die "Java $version is too old for Spark 4.2. Install Java 17 (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME to it."
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.11 python3.12 python3; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}
