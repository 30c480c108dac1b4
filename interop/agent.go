package main

import (
	"context"
	"flag"
	"path/filepath"
	"time"

	"open-cluster-management.io/api/feature"
	"open-cluster-management.io/ocm/pkg/common/options"
	"open-cluster-management.io/ocm/pkg/features"
	registration "open-cluster-management.io/ocm/pkg/registration/spoke"
	"open-cluster-management.io/ocm/pkg/singleton/spoke"
	work "open-cluster-management.io/ocm/pkg/work/spoke"
)

// agent is OCM's registration agent and its work agent, in one process, as OCM's singleton mode has them.
func agent(flags *flag.FlagSet) func(ctx context.Context) error {
	kubeconfig := flags.String("kubeconfig", "", "the cluster that is managed")
	bootstrap := flags.String("bootstrap-kubeconfig", "", "how the hub is asked to let the cluster in")
	cluster := flags.String("cluster-name", "", "the name of the cluster on the hub")
	folder := flags.String("data-dir", "", "where the kubeconfig of the hub is kept")

	return func(ctx context.Context) error {
		for _, gates := range []featureGates{feature.DefaultSpokeRegistrationFeatureGates, feature.DefaultSpokeWorkFeatureGates} {
			if err := features.SpokeMutableFeatureGate.Add(gates); err != nil {
				return err
			}
		}
		surroundings, err := around(*kubeconfig)
		if err != nil {
			return err
		}
		common := options.NewAgentOptions()
		common.SpokeClusterName = *cluster
		common.HubKubeconfigDir = *folder
		common.HubQPS, common.HubBurst = 50, 100

		registers := registration.NewSpokeAgentOptions()
		registers.BootstrapKubeconfig = *bootstrap

		applies := work.NewWorkloadAgentOptions()
		applies.WorkloadSourceConfig = filepath.Join(*folder, "kubeconfig")
		// Nobody waits ten seconds in a test for what was reported to be looked at again.
		applies.StatusSyncInterval = time.Second

		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return spoke.NewAgentConfig(common, registers, applies, cancel).RunSpokeAgent(ctx, surroundings)
	}
}
