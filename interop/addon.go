package main

import (
	"context"
	"flag"

	"open-cluster-management.io/addon-framework/examples/helloworld"
	"open-cluster-management.io/addon-framework/pkg/addonfactory"
	"open-cluster-management.io/addon-framework/pkg/addonmanager"
	"open-cluster-management.io/addon-framework/pkg/utils"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
)

// addon is the manager of the framework's own example, "helloworld": a Deployment, which registers with the hub and
// takes an AddOnDeploymentConfig.
func addon(flags *flag.FlagSet) func(ctx context.Context) error {
	kubeconfig := flags.String("kubeconfig", "", "the hub")

	return func(ctx context.Context) error {
		config, err := connect(*kubeconfig)
		if err != nil {
			return err
		}
		client, err := addonclient.NewForConfig(config)
		if err != nil {
			return err
		}
		settings := utils.NewAddOnDeploymentConfigGetter(client)
		namespace := utils.AgentInstallNamespaceFromDeploymentConfigFunc(settings)
		registration := helloworld.NewRegistrationOption(config, helloworld.AddonName, "agent")
		registration.AgentInstallNamespace = namespace

		values := addonfactory.GetAddOnDeploymentConfigValues(settings,
			addonfactory.ToAddOnDeploymentConfigValues,
			addonfactory.ToImageOverrideValuesFunc("Image", helloworld.DefaultHelloWorldExampleImage))
		agent, err := addonfactory.NewAgentAddonFactory(helloworld.AddonName, helloworld.FS, "manifests/templates").
			WithConfigGVRs(utils.AddOnDeploymentConfigGVR).
			WithGetValuesFuncs(helloworld.GetDefaultValues, values).
			WithAgentRegistrationOption(registration).
			WithAgentInstallNamespace(namespace).
			WithAgentHealthProber(helloworld.AgentHealthProber()).
			BuildTemplateAgentAddon()
		if err != nil {
			return err
		}
		manager, err := addonmanager.New(config)
		if err != nil {
			return err
		}
		if err := manager.AddAgent(agent); err != nil {
			return err
		}
		if err := manager.Start(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}
