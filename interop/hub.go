package main

import (
	"context"
	"flag"

	"github.com/openshift/library-go/pkg/controller/controllercmd"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/featuregate"
	"open-cluster-management.io/api/feature"
	addons "open-cluster-management.io/ocm/pkg/addon"
	"open-cluster-management.io/ocm/pkg/features"
	placement "open-cluster-management.io/ocm/pkg/placement/controllers"
	registration "open-cluster-management.io/ocm/pkg/registration/hub"
	work "open-cluster-management.io/ocm/pkg/work/hub"
)

type featureGates = map[featuregate.Feature]featuregate.FeatureSpec

// hub is OCM's four managers on a hub, in one process, without their webhooks.
func hub(flags *flag.FlagSet) func(ctx context.Context) error {
	kubeconfig := flags.String("kubeconfig", "", "the hub")

	return func(ctx context.Context) error {
		for _, gates := range []featureGates{
			feature.DefaultHubRegistrationFeatureGates,
			feature.DefaultHubWorkFeatureGates,
			feature.DefaultHubAddonManagerFeatureGates,
		} {
			if err := features.HubMutableFeatureGate.Add(gates); err != nil {
				return err
			}
		}
		managers := []controllercmd.StartFunc{
			registration.NewHubManagerOptions().RunControllerManager,
			work.NewWorkHubManagerConfig(work.NewWorkHubManagerOptions()).RunWorkHubManager,
			placement.RunControllerManager,
			addons.RunManager,
		}
		group, ctx := errgroup.WithContext(ctx)
		for _, manager := range managers {
			surroundings, err := around(*kubeconfig)
			if err != nil {
				return err
			}
			group.Go(func() error { return manager(ctx, surroundings) })
		}
		return group.Wait()
	}
}
