// Where output goes: the terminal (or the parent's pipes) gets the ready line and the sentence about a
// failure; everything that the components log, and the trace of a crash, goes to testenv.log.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// readyLine is the one line on standard output.
type readyLine struct {
	Ready      bool   `json:"ready"`
	Kubeconfig string `json:"kubeconfig"`
	URL        string `json:"url"`
	Version    string `json:"version"`
}

// terminal keeps the original standard output and error after the redirection.
type terminal struct {
	stdout, stderr *os.File
	logPath        string
}

// redirectOutput creates the data directory and points file descriptors 1 and 2 at the log in it. It works
// on the descriptors because etcd, gRPC and Kubernetes each have loggers of their own.
func redirectOutput(dataDir string) (*terminal, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("could not create the data directory: %w", err)
	}
	logPath := filepath.Join(dataDir, "testenv.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s was used before; every start needs a new or empty --data-dir", dataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("could not create the log: %w", err)
	}

	t := &terminal{logPath: logPath}
	if t.stdout, err = moveAway(os.Stdout, log); err != nil {
		return nil, err
	}
	if t.stderr, err = moveAway(os.Stderr, log); err != nil {
		return nil, err
	}
	// A crash is worth seeing in both places; the log gets it through descriptor 2.
	return t, debug.SetCrashOutput(t.stderr, debug.CrashOptions{})
}

// moveAway returns what the file was, and makes its descriptor write to the log from now on.
func moveAway(file, log *os.File) (*os.File, error) {
	original, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("could not keep %s: %w", file.Name(), err)
	}
	if err := unix.Dup2(int(log.Fd()), int(file.Fd())); err != nil {
		return nil, fmt.Errorf("could not redirect %s to the log: %w", file.Name(), err)
	}
	return os.NewFile(uintptr(original), file.Name()), nil
}

func (t *terminal) announce(line readyLine) error {
	if err := json.NewEncoder(t.stdout).Encode(line); err != nil {
		return fmt.Errorf("could not print the ready line: %w", err)
	}
	return nil
}

// fail ends the process with one sentence, on one line, about why.
func (t *terminal) fail(err error) {
	fmt.Fprintf(t.stderr, "testenv: %s; the log is %s\n", strings.Join(strings.Fields(err.Error()), " "), t.logPath)
	os.Exit(1)
}
