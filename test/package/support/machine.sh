# The first process of a machine, in namespaces of its own (machine.ts). It mounts the machine's root over "$lower";
# changes go to "$work" and are discarded. It prints its process id, and becomes the machine's init. The mounts and the
# processes end with the namespaces, however this process ends.
set -eu
lower=$1 work=$2 init=$3

# The process id in the outer namespace: /proc is still the outer one.
read -r pid _ </proc/self/stat

root=$work/root
mkdir -p "$work/upper" "$work/work" "$root"
overlay() { mount -t overlay -o "lowerdir=$lower,upperdir=$1/upper,workdir=$1/work" machine "$root"; }
# An overlay, such as a container's own root, cannot store the changes of another one: then memory stores them.
if ! overlay "$work" 2>/dev/null; then
  mkdir -p "$work/memory"
  mount -t tmpfs -o mode=755 memory "$work/memory"
  mkdir -p "$work/memory/upper" "$work/memory/work"
  overlay "$work/memory"
fi

mkdir -p "$root/proc" "$root/dev" "$root/tmp"
chmod 1777 "$root/tmp"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"

# Device nodes of its own: a getty in the machine changes their mode, which must not affect the host's.
mount -t tmpfs -o mode=755 devices "$root/dev"
node() { mknod -m "$2" "$root/dev/$1" c "$3" "$4"; }
node null 666 1 3
node zero 666 1 5
node random 666 1 8
node urandom 666 1 9

if [ "$init" != bare ]; then
  node full 666 1 7
  node tty 666 5 0
  ln -s /proc/self/fd "$root/dev/fd"
  ln -s pts/ptmx "$root/dev/ptmx"
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
  mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
  mount -t tmpfs -o mode=755 run "$root/run"
  mkdir -p "$root/run/lock"
fi

echo "$pid"
case $init in
  systemd)
    # Most of these settings belong to the kernel, not to the machine.
    mount --bind "$root/proc/sys" "$root/proc/sys"
    mount -o remount,bind,ro "$root/proc/sys"
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /sbin/init </dev/null >/dev/null 2>&1
    ;;
  *)
    # A shell that waits for a child reaps all other processes that end below it. The child ends with its input, that is
    # with the test.
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /bin/sh -c 'cat >/dev/null; exit 0'
    ;;
esac
