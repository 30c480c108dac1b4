// Command testenv is a real Kubernetes API for tests: etcd, kube-apiserver and the few controllers that Drover's tests
// rely on, in one process. This file has its life, from the empty data directory to the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

func main() {
	settings, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		os.Exit(2)
	}
	if len(settings.protobufKinds) > 0 {
		if err := printProtobuf(os.Stdout, settings.protobufKinds); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
			os.Exit(1)
		}
		return
	}
	terminal, err := redirectOutput(settings.dataDir)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		os.Exit(1)
	}
	// Some of Kubernetes' code ends the process by itself when it cannot go on.
	klog.OsExit = func(int) { terminal.fail(errors.New("a component of Kubernetes gave up")) }

	// Nothing is shut down: the data is disposable, and an exit takes no time.
	err = run(settings, terminal)
	if settings.removeData && (err == nil || errors.Is(err, errEndedEarly)) {
		_ = os.RemoveAll(settings.dataDir)
	}
	if err != nil {
		terminal.fail(err)
	}
	os.Exit(0)
}

var errEndedEarly = errors.New("it was told to end, by a signal or by the end of standard input, before it was ready")

// run starts everything and returns when the process should end: nil when that was asked for.
func run(settings settings, terminal *terminal) error {
	ended := make(chan error, 8)
	go awaitSignal(ended)
	if settings.endWithStdin {
		go awaitStdinEOF(ended)
	}

	var doing step
	ready := make(chan readyLine, 1)
	go func() {
		line, err := start(settings, &doing, ended)
		if err != nil {
			ended <- fmt.Errorf("could not %s: %w", doing.get(), err)
			return
		}
		ready <- line
	}()

	select {
	case line := <-ready:
		if err := terminal.announce(line); err != nil {
			return err
		}
	case err := <-ended:
		if err == nil {
			return errEndedEarly
		}
		return err
	case <-time.After(settings.startTimeout):
		return fmt.Errorf("could not %s within the %s of --start-timeout", doing.get(), settings.startTimeout)
	}
	return <-ended
}

// start brings the parts up one after the other. The custom resources come before the garbage collector, so that it
// watches them from its first moment.
func start(settings settings, doing *step, ended chan<- error) (readyLine, error) {
	ctx := context.Background()
	line := readyLine{Version: version.Get().GitVersion, Kubeconfig: filepath.Join(settings.dataDir, "admin.kubeconfig")}

	doing.set("read the custom resources")
	crds, err := readCRDs(settings.crdDirs)
	if err != nil {
		return line, err
	}
	doing.set("create the certificates")
	// The paths of Unix sockets are short, so etcd's is relative to the data directory.
	if err := os.Chdir(settings.dataDir); err != nil {
		return line, err
	}
	pki, err := createPKI("pki")
	if err != nil {
		return line, err
	}
	doing.set("start etcd")
	etcdURL, err := startEtcd("etcd", ended)
	if err != nil {
		return line, err
	}
	doing.set("start the API server")
	server, err := startAPIServer(ctx, etcdURL, pki, ended)
	if err != nil {
		return line, err
	}
	line.URL = server.url
	doing.set("install the custom resources")
	if err := installCRDs(ctx, server.client, crds); err != nil {
		return line, err
	}
	doing.set("see the API server become ready")
	if err := awaitReady(ctx, server.client); err != nil {
		return line, err
	}
	doing.set("start the controllers")
	if err := startControllers(ctx, server.client, pki, settings.signingDuration); err != nil {
		return line, err
	}
	doing.set("write the kubeconfig")
	line.Ready = true
	return line, writeKubeconfig(line.Kubeconfig, line.URL, pki)
}

// step is what is being done, for the sentence about a failure; the time-out reads it from outside.
type step struct {
	text atomic.Value
}

func (s *step) set(text string) {
	klog.InfoS("Starting", "step", text)
	s.text.Store(text)
}

func (s *step) get() string {
	text, _ := s.text.Load().(string)
	return text
}

func awaitSignal(ended chan<- error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	ended <- nil
}

func awaitStdinEOF(ended chan<- error) {
	// A standard input that cannot be read has ended, too.
	_, _ = io.Copy(io.Discard, os.Stdin)
	ended <- nil
}
