// Interop runs Open Cluster Management's own programs, without a cluster to put them in: the agent of a managed
// cluster, the controllers of a hub, and an add-on that is made with OCM's framework.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/openshift/library-go/pkg/controller/controllercmd"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// A part is one of the programs: it adds its flags, and returns what runs it.
type part func(flags *flag.FlagSet) func(ctx context.Context) error

var parts = map[string]part{
	"addon": addon,
	"agent": agent,
	"crds":  crds,
	"hub":   hub,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: interop addon|agent|crds|hub [flags]")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	untilEOF := flags.Bool("stdin-eof", false, "end when standard input ends")
	klog.InitFlags(flags)
	run := parts[os.Args[1]](flags)
	// It exits by itself on a mistake.
	_ = flags.Parse(os.Args[2:])

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

// connect reads a kubeconfig, for a client that is not held back.
func connect(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// around is what OCM's programs are handed when they start.
func around(kubeconfig string) (*controllercmd.ControllerContext, error) {
	config, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	return &controllercmd.ControllerContext{KubeConfig: config, OperatorNamespace: "open-cluster-management-hub"}, nil
}
