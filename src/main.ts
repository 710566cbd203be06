#!/usr/bin/env -S node --no-allocation-site-pretenuring
// Without the flag V8 puts objects in the old generation if objects of the same code survived before. Under slow requests such as
// uploads it then does so for each request, and young collections take six times as long from then on (docs/decisions/0015).
import { existsSync, readFileSync } from 'node:fs'
import module from 'node:module'
import { env, stderr, stdin, stdout } from 'node:process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type CliPorts, exitCodes, handleOutputErrors } from './cli/cli-ports.ts'
import { nodeFault } from './cli/node-version.js'
import { runCli } from './cli/run-cli.ts'
import {
  handleSignalsWhileStarting,
  ignoreSignals,
  ignoreUserSignals,
  stopOnSignal,
} from './cli/stop-on-signal.ts'
import { watchFiles } from './cli/watch-files.ts'
import { isWorker, linkToParent, parentLine, type WorkerLink } from './cluster/worker-link.ts'
import { packageFile } from './package-file.ts'

// Since Node 22.8: a start reads the compiled code that an earlier one has left, if it could write there (docs/decisions/0016).
const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => unknown }
enableCompileCache?.(fileURLToPath(packageFile('dist/compile-cache')))

const { version, engines } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
  version: string
  engines: { node: string }
}
const fault = nodeFault(process.versions.node, engines.node)
if (fault !== undefined) {
  stderr.write(`trellis: ${fault}\n`)
  process.exit(exitCodes.notStarted.code)
}
const defaultFile = './trellis.yaml'

// Loaded by the commands that need them: `check`, `schema` and `--help` start without a gateway.
const gateways = () => import('./workers.ts')
const upstreamReports = () => import('./gateway/upstream-issues.ts')
const explanations = () => import('./gateway/explain.ts')

ignoreUserSignals(isWorker() ? undefined : stderr)
handleOutputErrors({ stdout, stderr, exit: (code) => process.exit(code) })

/** Ends the handling of signals while starting; true when a reload is due. */
let endOfStart = (): boolean => false

/** Called by POST /drain. Until the gateway runs there are no requests to finish. */
let drainAndEnd = (): void => {
  process.kill(process.pid, 'SIGTERM')
}

const common = {
  argv: process.argv.slice(2),
  env,
  stdout,
  stderr,
  version,
  defaultFile: existsSync(defaultFile) ? defaultFile : undefined,
  packageFolder: packageFile(''),
  initFile: defaultFile,
  demoFile: fileURLToPath(packageFile('config/gateway.yaml')),
  readInput: () => text(stdin),
  describeRoutes: async (config, learn) => {
    const { describeLearnedRoutes, describeRoutes } = await upstreamReports()
    return learn ? describeLearnedRoutes(config) : describeRoutes(config)
  },
  upstreamIssues: async (config, services) => {
    const { allUpstreamIssues, upstreamIssues } = await upstreamReports()
    return services === 'all' ? allUpstreamIssues(config) : upstreamIssues(config)
  },
  upstreamFreshness: async (config) => (await upstreamReports()).upstreamFreshness(config),
  siteFacts: async (config) => (await upstreamReports()).siteFacts(config),
  startTrial: async (config) => (await import('./start-trial.ts')).startTrial(config, version),
  upstreamHints: async (config) => (await upstreamReports()).upstreamHints(config),
  examine: async (config) => (await import('./gateway/doctor.ts')).examine(config),
  driftReport: async (config) => (await upstreamReports()).driftReport(config),
  documentHints: async (config) => (await import('./openapi/hints.ts')).documentHints(config),
  explain: async (config, request, learn) => {
    const { explain, explainLearned } = await explanations()
    return (learn ? explainLearned : explain)(config, request)
  },
} satisfies Partial<CliPorts>

const main: CliPorts = {
  ...common,
  handedConfig: undefined,
  startGateway: async (config, options) => {
    endOfStart = handleSignalsWhileStarting(stderr)
    const { startProcesses } = await gateways()
    return startProcesses(config, {
      ...options,
      file: fileURLToPath(import.meta.url),
      end: () => drainAndEnd(),
    })
  },
  reloadOnChange: (gateway, files, pollMs) => {
    watchFiles({ files, settleMs: 200, missingMs: 2_000, pollMs, readAfterMs: performance.timeOrigin }, () =>
      gateway.reload(),
    )
  },
  stopOnSignal: (gateway, graceMs, notice) => {
    drainAndEnd = stopOnSignal(gateway, graceMs, stderr, notice)
    if (endOfStart()) void gateway.reload()
  },
}

/** The ports of one of several processes: its parent handles files and signals, and prints the messages of the start. */
const workerPorts = async (link: WorkerLink): Promise<CliPorts> => {
  const { handedConfig, startAsWorker } = await gateways()
  return {
    ...common,
    handedConfig: handedConfig(link),
    stderr: { write: () => true },
    upstreamIssues: async () => [],
    startGateway: (config, options) => startAsWorker(config, { ...options, end: link.end }, link),
    reloadOnChange: () => {},
    stopOnSignal: (gateway) => ignoreSignals(gateway),
  }
}

const end = await runCli(isWorker() ? await workerPorts(await linkToParent(parentLine())) : main)
// A start that failed may have opened servers, which would keep the process running.
if (end === exitCodes.notStarted.code) process.exit(end)
if (end !== 'running') process.exitCode = end
