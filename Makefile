# Caisson: serve it, test it, measure it, install it.
#
#   make serve              build the release and serve a prepared directory on 127.0.0.1:2121
#   make test               install what the tests need (as root), then run every check and test
#   make bench              measure against vsftpd, Pure-FTPd, ProFTPD, pyftpdlib and a floor, in one run
#   make && make install    into DESTDIR, FHS paths (installs what was built, so that root needs no toolchain)

PREFIX ?= /usr
DESTDIR ?=
SBINDIR = $(DESTDIR)$(PREFIX)/sbin
BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBEXECDIR = $(DESTDIR)$(PREFIX)/libexec/caisson
MANDIR = $(DESTDIR)$(PREFIX)/share/man
SYSCONFDIR = $(DESTDIR)/etc/caisson
CARGO ?= cargo
BUILT = $(or $(CARGO_TARGET_DIR),target)/release
FUZZ_SECONDS ?= 3

.PHONY: all serve test setup lint check e2e deny fuzz bench install clean

all:
	$(CARGO) build --release --workspace

serve: all
	packaging/serve

test: setup lint deny check fuzz
	@echo 'make test: all checks passed'

setup:
	tests/setup

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# The end-to-end tests start the programs of the same profile; those that weigh processes, the release's.
check: all
	$(CARGO) build --workspace
	tests/run

deny:
	$(CARGO) deny --workspace check bans licenses sources

fuzz:
	tests/fuzz $(FUZZ_SECONDS)

bench:
	bench/run $(BENCH_FLAGS)

install:
	@test -x $(BUILT)/caissond || { echo "nothing is built yet: run make first, then make install" >&2; exit 1; }
	install -d $(SBINDIR) $(BINDIR) $(LIBEXECDIR) $(MANDIR)/man5 $(MANDIR)/man8 $(SYSCONFDIR) $(DESTDIR)/usr/lib/systemd/system $(DESTDIR)/usr/lib/sysusers.d
	install -m 0755 $(BUILT)/caissond $(SBINDIR)/caissond
	install -m 0755 $(BUILT)/caissonctl $(BINDIR)/caissonctl
	install -m 0755 $(BUILT)/caisson-worker $(BUILT)/caisson-authd $(BUILT)/caisson-broker $(BUILT)/caisson-config $(LIBEXECDIR)/
	install -m 0644 man/*.5 $(MANDIR)/man5/
	install -m 0644 man/*.8 $(MANDIR)/man8/
	test -e $(SYSCONFDIR)/caisson.toml || install -m 0600 packaging/caisson.toml $(SYSCONFDIR)/caisson.toml
	test -e $(SYSCONFDIR)/users.toml || install -m 0600 packaging/users.toml $(SYSCONFDIR)/users.toml
	install -m 0644 packaging/caisson.service $(DESTDIR)/usr/lib/systemd/system/caisson.service
	install -m 0644 packaging/caisson.sysusers $(DESTDIR)/usr/lib/sysusers.d/caisson.conf

clean:
	$(CARGO) clean
