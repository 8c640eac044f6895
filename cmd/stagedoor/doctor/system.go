package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stagedoor/cmd/stagedoor/config"
)

// spareFiles counts the descriptors that a gateway needs besides its connections.
const spareFiles = 64

// enoughBacklog counts the connections that should be able to wait in the kernel.
const enoughBacklog = 1024

// system checks the resources that the system gives the process.
func system(c *config.Config) []Check {
	return []Check{
		{"processors", OK, strconv.Itoa(runtime.GOMAXPROCS(0)), ""},
		openFiles(c.Limits.Requests),
		backlog("/proc/sys/net/core/somaxconn"),
	}
}

// openFiles compares the limit with what the configuration takes on: a request
// has a connection of its client's and one to its provider.
func openFiles(requests int) Check {
	const name = "open files"
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return Check{name, Warning, "the limit is not known: " + err.Error(), ""}
	}
	return judgeFiles(uint64(limit.Cur), requests)
}

// judgeFiles judges a limit of open files. The figure is of a process that is started from this shell. A service
// manager may set another one.
func judgeFiles(limit uint64, requests int) Check {
	const name = "open files"
	need := uint64(2*requests + spareFiles)
	detail := fmt.Sprintf("%d for a process started from here", limit)
	switch {
	case limit < 1024:
		return Check{name, Failed, detail, "raise the limit (ulimit -n, LimitNOFILE)"}
	case limit < need:
		return Check{
			name,
			Warning,
			detail + fmt.Sprintf(", %d requests under way need %d", requests, need),
			"raise the limit (ulimit -n, LimitNOFILE), or lower limits.requests: beyond it, connections wait",
		}
	}
	return Check{name, OK, detail, ""}
}

// leastMemory covers a text request of the largest size, without the program itself.
const leastMemory = 200 << 20

// memory judges whether bodies leave enough of the memory to what is done with them.
func memory(most, bodies int64) Check {
	const name = "memory"
	detail := fmt.Sprintf("%d MiB", most>>20)
	switch {
	case bodies > most/2:
		return Check{
			name, Warning, detail + fmt.Sprintf(", bodies alone may take %d MiB", bodies>>20),
			"give it more, or lower limits.body_mib",
		}
	case most < leastMemory:
		return Check{name, Warning, detail, "give it more: large requests are refused"}
	}
	return Check{name, OK, detail, ""}
}

// backlog checks how many connections may wait in the kernel until the gateway accepts them.
func backlog(file string) Check {
	const name = "waiting connections"
	text, err := os.ReadFile(file)
	if err != nil {
		return Check{name, Skipped, "this system does not say how many may wait", ""}
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && n < enoughBacklog {
		return Check{
			name, Warning, strconv.Itoa(n),
			"raise net.core.somaxconn: in a burst, or while a socket waits for a restart, more are refused",
		}
	}
	return Check{name, OK, strings.TrimSpace(string(text)), ""}
}

// addresses checks whether the process can listen on the configured addresses.
func addresses(ctx context.Context, listen []string, running bool) []Check {
	var out []Check
	for _, a := range listen {
		name := "listen " + a
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", a)
		switch {
		case err == nil:
			_ = l.Close()
			out = append(out, Check{name, OK, "free", ""})
		// The gateway that runs has the address, so a conflict is what a sound configuration looks like.
		case running && errors.Is(err, syscall.EADDRINUSE):
			out = append(out, Check{name, OK, "in use, as it should be: a gateway runs on the data directory", ""})
		case errors.Is(err, syscall.EADDRINUSE):
			out = append(out, Check{
				name, Warning, "in use by another process",
				"stop it or choose another address, unless it is the service manager's socket for this gateway",
			})
		case errors.Is(err, syscall.EACCES):
			out = append(out, Check{
				name, Failed, "this user may not listen there",
				"choose a port above 1023, or let the service manager hold the socket",
			})
		default:
			out = append(out, Check{name, Failed, plain(err), "choose an address of this machine"})
		}
	}
	return out
}

// plain returns the text of an error without the addresses that net puts around it.
func plain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// renewBefore is the validity below which a certificate is reported as due for renewal.
const renewBefore = 14 * 24 * time.Hour

// certificate loads the certificate with its key, as the start does, and judges its validity.
func certificate(cert, key string) Check {
	const name = "certificate"
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return Check{name, Failed, err.Error(), "give a PEM chain and its key (tls.cert, tls.key)"}
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return Check{name, Failed, err.Error(), ""}
	}
	return judgeCertificate(leaf.NotBefore, leaf.NotAfter, time.Now())
}

// judgeCertificate judges a period of validity at a time.
func judgeCertificate(from, to, now time.Time) Check {
	const name = "certificate"
	detail := "valid until " + to.UTC().Format(time.DateOnly)
	switch {
	case now.After(to):
		return Check{
			name, Failed, "expired on " + to.UTC().Format(time.DateOnly),
			"renew it; a gateway that runs reads it at its next start",
		}
	case now.Before(from):
		return Check{name, Failed, "valid from " + from.UTC().Format(time.DateOnly) + " only", "look at the clock"}
	case now.Add(renewBefore).After(to):
		return Check{name, Warning, detail, "renew it soon"}
	}
	return Check{name, OK, detail, ""}
}
