#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs'
import { env, stderr, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import type { CliPorts } from './cli/cli-ports.ts'
import { exitCodes, hearOutputFaults } from './cli/exit-codes.ts'
import { runCli } from './cli/run-cli.ts'
import { hearWhileStarting, leaveSignals, stopOnSignal } from './cli/stop-on-signal.ts'
import { watchFiles } from './cli/watch-files.ts'
import { isWorker, linkToParent, parentLine, type WorkerLink } from './cluster/worker-link.ts'
import { packageFile } from './package-file.ts'

/**
 * Keeps V8 from deciding, by what lived long while it looked, that objects made in some place are made old. What a gateway makes for a
 * request lives as long as the request: under slow ones, such as uploads, V8 takes them for lasting, and from then on each
 * request leaves old garbage that holds young garbage. Collections of the young then take six times as long, for as long as the
 * process runs (docs/decisions/0015). To be called before anything is served.
 */
const keepObjectsYoung = (): void => {
  setFlagsFromString('--no-allocation-site-pretenuring')
}

keepObjectsYoung()

const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }
const shipped = fileURLToPath(packageFile('config/gateway.yaml'))

// Loaded by the commands that need them: `check`, `schema` and `--help` start without a gateway.
const gateways = () => import('./workers.ts')
const upstreamReports = () => import('./build/upstream-findings.ts')
const explanations = () => import('./build/explain.ts')

hearOutputFaults({ stdout, stderr, exit: (code) => process.exit(code) })

/** Ends what a start does with signals; see there. */
let startIsOver = (): boolean => false

/** What POST /drain asks for. Until the gateway runs there is nothing to finish. */
let drainAndEnd = (): void => {
  process.kill(process.pid, 'SIGTERM')
}

const common = {
  argv: process.argv.slice(2),
  env,
  stdout,
  stderr,
  version,
  defaultFile: existsSync(shipped) ? shipped : undefined,
  describeRoutes: async (config, learn) => {
    const { describeLearnedRoutes, describeRoutes } = await upstreamReports()
    return learn ? describeLearnedRoutes(config) : describeRoutes(config)
  },
  upstreamFindings: async (config) => (await upstreamReports()).upstreamFindings(config),
  driftReport: async (config) => (await upstreamReports()).driftReport(config),
  explain: async (config, request, learn) => {
    const { explain, explainLearned } = await explanations()
    return learn ? explainLearned(config, request) : explain(config, request)
  },
} satisfies Partial<CliPorts>

const main: CliPorts = {
  ...common,
  given: undefined,
  startGateway: async (config, given) => {
    startIsOver = hearWhileStarting(stderr)
    const { startProcesses } = await gateways()
    return startProcesses(config, {
      ...given,
      file: fileURLToPath(import.meta.url),
      end: () => drainAndEnd(),
    })
  },
  reloadOnChange: (gateway, files, pollMs) => {
    watchFiles({ files, settleMs: 200, pollMs, readAfterMs: performance.timeOrigin }, () => gateway.reload())
  },
  stopOnSignal: (gateway, graceMs) => {
    drainAndEnd = stopOnSignal(gateway, graceMs, stderr)
    if (startIsOver()) void gateway.reload()
  },
}

/** The ports of one of several processes: its parent handles files and signals, and prints the messages of the start. */
const workerPorts = async (link: WorkerLink): Promise<CliPorts> => {
  const { handedConfig, startAsWorker } = await gateways()
  return {
    ...common,
    given: handedConfig(link),
    stderr: { write: () => true },
    upstreamFindings: async () => [],
    startGateway: (config, options) => startAsWorker(config, { ...options, end: link.end }, link),
    reloadOnChange: () => {},
    stopOnSignal: (gateway) => leaveSignals(gateway),
  }
}

const end = await runCli(isWorker() ? await workerPorts(await linkToParent(parentLine())) : main)
// A start that failed half-way has opened servers, which would keep the process.
if (end === exitCodes.notStarted.code) process.exit(end)
if (end !== 'running') process.exitCode = end
