// The API server: kube-apiserver as it is, with the switches that tests need and without the parts that
// only matter where pods run.

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// needlessAdmission are plugins that concern pods, nodes and volumes. Some would even be in the way, as the
// controllers that they count on do not run: no default service accounts, nobody to lift a volume's protection,
// nobody to count a quota.
var needlessAdmission = []string{
	"DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "LimitRanger",
	"PersistentVolumeClaimResize", "PodSecurity", "Priority", "ResourceQuota", "RuntimeClass",
	"ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition",
}

// apiServer is what the other parts need of the running server.
type apiServer struct {
	url string
	// client is for the server's own, all-powerful user.
	client *rest.Config
}

// startAPIServer returns when the server serves its own user; for all others, it is awaitReady that tells.
func startAPIServer(ctx context.Context, etcdURL string, p *pki, ended chan<- error) (*apiServer, error) {
	// The listener is made here and handed over, so that no other process can take the port in between.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	chain, err := buildAPIServer(ctx, listener, apiServerFlags(etcdURL, p))
	if err != nil {
		return nil, err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, err
	}
	go func() {
		ended <- fmt.Errorf("the API server stopped serving: %v", prepared.Run(ctx))
	}()

	server := &apiServer{
		url:    "https://" + listener.Addr().String(),
		client: chain.GenericAPIServer.LoopbackClientConfig,
	}
	return server, awaitReady(ctx, server.client, slowChecks...)
}

func apiServerFlags(etcdURL string, p *pki) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--client-ca-file=" + p.caCert,
		"--tls-cert-file=" + p.servingCert,
		"--tls-private-key-file=" + p.servingKey,
		"--service-account-key-file=" + p.serviceAccountPub,
		"--service-account-signing-key-file=" + p.serviceAccountKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=" + strings.Join(needlessAdmission, ","),
		// The endpoints of the service "kubernetes" may not be on loopback, and nobody uses them.
		"--endpoint-reconciler-type=none",
		// A test must not be slowed down or refused because it shares the machine with others.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		// Both renew records of the server itself every few seconds; a quiet store should stay quiet.
		"--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false",
		"--profiling=false",
	}
}

// buildAPIServer does what kube-apiserver's command does up to the point where it would serve. The command itself
// takes neither a listener nor a context, and takes the process's signals.
func buildAPIServer(ctx context.Context, listener net.Listener, args []string) (*aggregator.APIAggregator, error) {
	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	completed, err := opts.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, err
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return nil, err
	}
	return app.CreateServerChain(completedConfig)
}

// slowChecks are done by hooks that pause for a second before they start. What is all-powerful need not wait for them.
var slowChecks = []string{"poststarthook/rbac/bootstrap-roles", "poststarthook/scheduling/bootstrap-system-priority-classes"}

// awaitReady returns when the server says that it is ready, not counting the excepted checks.
func awaitReady(ctx context.Context, config *rest.Config, except ...string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		request := client.Discovery().RESTClient().Get().AbsPath("/readyz")
		for _, check := range except {
			request = request.Param("exclude", check)
		}
		_, last = request.DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
