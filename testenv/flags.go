// The command line.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"
)

// settings are what the command line decides.
type settings struct {
	dataDir         string
	crdDirs         []string
	endWithStdin    bool
	removeData      bool
	startTimeout    time.Duration
	signingDuration time.Duration
	protobufKinds   []string
}

func parseFlags(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("testenv", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error is enough, without all the flags below it
	flags.StringVar(&s.dataDir, "data-dir", "", "new or empty `directory` for all files, among them admin.kubeconfig and testenv.log")
	flags.Func("crds", "`directory` whose *.yaml are applied before the ready line; may be repeated", func(dir string) error {
		s.crdDirs = append(s.crdDirs, dir)
		return nil
	})
	flags.BoolVar(&s.endWithStdin, "stdin-eof", false, "end when standard input ends, so that this process dies with its parent")
	flags.BoolVar(&s.removeData, "remove-data", false, "remove the data directory when told to end; it stays, with the log, after a failure")
	flags.DurationVar(&s.startTimeout, "start-timeout", 2*time.Minute, "give up when not ready after this `time`")
	flags.DurationVar(&s.signingDuration, "cluster-signing-duration", 365*24*time.Hour, "longest `life` of a certificate signed for a CertificateSigningRequest")
	flags.Func("print-protobuf", "print what messages of this `kind`, such as apps/v1/Deployment, are made of, and end; may be repeated", func(kind string) error {
		s.protobufKinds = append(s.protobufKinds, kind)
		return nil
	})
	flags.Func("v", "`level` of detail in the log (0 to 10)", func(level string) error {
		var verbosity klog.Level
		return verbosity.Set(level)
	})

	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(os.Stdout)
		flags.Usage()
		return s, err
	case err != nil:
		return s, fmt.Errorf("%w; --help lists the flags", err)
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q; testenv takes flags only", flags.Arg(0))
	case s.dataDir == "" && len(s.protobufKinds) == 0:
		return s, errors.New("--data-dir is missing; name a new or empty directory")
	}
	return s, s.makePathsAbsolute()
}

// makePathsAbsolute prepares for the change of the working directory at the start.
func (s *settings) makePathsAbsolute() (err error) {
	if s.dataDir, err = filepath.Abs(s.dataDir); err != nil {
		return err
	}
	for i := range s.crdDirs {
		if s.crdDirs[i], err = filepath.Abs(s.crdDirs[i]); err != nil {
			return err
		}
	}
	return nil
}
