// Peer calls Karpenter's scheduler in this process, on the same neutral files that Longshore's bench
// reads, so that both answer one question on one machine.
//
//	peer pack --catalogue FILE --workload FILE [--max-cpu-milli N] [--daemonset CPU_MILLI,MEM_MIB]
//	peer plan --catalogue FILE MANIFEST...
//
// Nothing of Karpenter is changed or imitated: topology, scheduler and cluster state are those of the
// pinned module, and only the call to Solve is timed, without the limit of a minute that the
// controller puts on it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage:
  peer pack --catalogue FILE --workload FILE [--max-cpu-milli N] [--daemonset CPU_MILLI,MEM_MIB]
  peer plan --catalogue FILE [--max-cpu-milli N] MANIFEST...
each with [--workers N] [--nodes] [--output json]`

// settings are what the flags say.
type settings struct {
	catalogue   string
	workload    string
	daemonSet   string
	maxCPUMilli int64
	workers     int
	nodes       bool
	manifests   []string
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	set, err := parse(args[0], args[1:])
	if err != nil {
		return err
	}
	types, err := readCatalogue(set.catalogue, set.maxCPUMilli)
	if err != nil {
		return err
	}
	var answer any
	switch args[0] {
	case "pack":
		answer, err = pack(set, types)
	case "plan":
		answer, err = plan(set, types)
	default:
		err = errors.New(usage)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(answer)
}

func parse(command string, args []string) (settings, error) {
	var set settings
	var output string
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.StringVar(&set.catalogue, "catalogue", "", "file of instance types")
	flags.StringVar(&set.workload, "workload", "", "file of pods: JSON or a trace in CSV")
	flags.StringVar(&set.daemonSet, "daemonset", "", "requests of a DaemonSet on every node")
	flags.Int64Var(&set.maxCPUMilli, "max-cpu-milli", 0, "leave out larger types; 0 keeps all")
	// As in Karpenter's own benchmark.
	flags.IntVar(&set.workers, "workers", 5, "goroutines of the scheduler")
	flags.BoolVar(&set.nodes, "nodes", false, "also name the nodes and their pods")
	flags.StringVar(&output, "output", "json", "json, the only form")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	set.manifests = flags.Args()
	switch {
	case output != "json":
		return set, fmt.Errorf("--output %s: only json is written", output)
	case set.catalogue == "":
		return set, errors.New("--catalogue is missing\n" + usage)
	case command == "pack" && set.workload == "":
		return set, errors.New("--workload is missing\n" + usage)
	case command == "plan" && len(set.manifests) == 0:
		return set, errors.New("no manifest is given\n" + usage)
	}
	return set, nil
}
