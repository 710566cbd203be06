#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs'
import { env, stderr, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { explain, explainLearned } from './build/explain.ts'
import {
  describeLearnedRoutes,
  describeRoutes,
  driftReport,
  upstreamFindings,
} from './build/upstream-findings.ts'
import { workersOf } from './build/workers.ts'
import type { CliPorts } from './cli/cli-ports.ts'
import { exitCodes, hearOutputFaults } from './cli/exit-codes.ts'
import { runCli } from './cli/run-cli.ts'
import { hearWhileStarting, leaveSignals, stopOnSignal } from './cli/stop-on-signal.ts'
import { watchFiles } from './cli/watch-files.ts'
import { isWorker, linkToParent, parentLine, type WorkerLink } from './cluster/worker-link.ts'
import { startGateway } from './gateway.ts'
import { handedConfig, startAsWorker, startWorkers } from './workers.ts'

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

const packageFile = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))

const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }
const shipped = packageFile('config/gateway.yaml')

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
  describeRoutes,
  describeLearnedRoutes,
  upstreamFindings,
  driftReport,
  explain,
  explainLearned,
}

const main: CliPorts = {
  ...common,
  given: undefined,
  startGateway: (config, given) => {
    startIsOver = hearWhileStarting(stderr)
    const options = { ...given, end: () => drainAndEnd() }
    return workersOf(config) === 1
      ? startGateway(config, options)
      : startWorkers(config, { ...options, file: fileURLToPath(import.meta.url) })
  },
  reloadOnChange: (gateway, files, pollMs) => {
    watchFiles({ files, settleMs: 200, pollMs, readAfterMs: performance.timeOrigin }, () => gateway.reload())
  },
  stopOnSignal: (gateway, graceMs) => {
    drainAndEnd = stopOnSignal(gateway, graceMs, stderr)
    if (startIsOver()) void gateway.reload()
  },
}

/** One of several processes: its parent looks after files and signals, and has said what there is to say. */
const asWorker = (link: WorkerLink): CliPorts => ({
  ...common,
  given: handedConfig(link),
  stderr: { write: () => true },
  upstreamFindings: async () => [],
  startGateway: (config, options) => startAsWorker(config, { ...options, end: link.end }, link),
  reloadOnChange: () => {},
  stopOnSignal: (gateway) => leaveSignals(gateway),
})

const end = await runCli(isWorker() ? asWorker(await linkToParent(parentLine())) : main)
// A start that failed half-way has opened servers, which would keep the process.
if (end === exitCodes.notStarted.code) process.exit(end)
if (end !== 'running') process.exitCode = end
