package command

import (
	"bytes"

	"github.com/berth-project/berth/internal/migration"
	"github.com/spf13/cobra"
)

func migrateCommand(p *program) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "migrate PATH...",
		Short: "Convert models and queues of other schedulers to manifests of Berth",
		Long: `Converts objects of other schedulers to manifests of Berth:

  KAITO          Workspace and InferenceSet    Model
  GPUStack       models, as its API has them   Model
  KAI-Scheduler  Queue                         Queue
  Volcano        Queue                         Queue
  Kueue          ClusterQueue and Cohort,      Queue
                 with their ResourceFlavors
                 LocalQueue                    annotation of the Namespace

A PATH is a file, a directory, or - for standard input. Each file has YAML or JSON,
also lists and several documents. Name all queues of a scheduler in one call: the
bounds of a cohort follow from its queues.

Each field that has no counterpart is named on standard error, with what to do about
it, and so is each kind of object that is not converted. An object that Berth would
refuse, such as a model of unknown size, is written as a comment that begins with
the reason. The exit code is 0 in these cases. It is 2 if a file is no YAML, if a
field has a value of the wrong type, or if no object can be converted.`,
		Example: "  kubectl get workspaces,inferencesets -A -o yaml | berth migrate -\n  kubectl get clusterqueues,cohorts,resourceflavors,localqueues -A -o yaml | berth migrate - -o queues.yaml\n  berth migrate examples/migrate/kaito.yaml | berth simulate examples/migrate/nodes.yaml -",
		Args:    minArgs(1, "a file or directory with objects of another scheduler"),
		RunE:    func(_ *cobra.Command, args []string) error { return runMigrate(p, args, output) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the manifests to this file (default: standard output)")
	return c
}

func runMigrate(p *program, args []string, output string) error {
	p.shown = p.screen.start()
	result, err := migration.Convert(p.loader(), args)
	p.shown.end()
	if err != nil {
		return err
	}
	for _, note := range result.Notes {
		p.note("%s", note)
	}
	var text bytes.Buffer
	if err := result.Write(&text); err != nil {
		return err
	}
	return p.writeManifests(output, args, text.Bytes())
}
