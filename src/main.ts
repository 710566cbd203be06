#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs'
import { env, stderr, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'
import { describeRoutes } from './assembly/describe-routes.ts'
import { driftReport } from './assembly/drift-report.ts'
import { explain } from './assembly/explain.ts'
import { exitCodes } from './cli/exit-codes.ts'
import { runCli } from './cli/run-cli.ts'
import { stopOnSignal } from './cli/stop-on-signal.ts'
import { watchFiles } from './cli/watch-files.ts'
import { startGateway } from './gateway.ts'

const packageFile = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))

const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }
const shipped = packageFile('config/gateway.yaml')

const end = await runCli({
  argv: process.argv.slice(2),
  env,
  stdout,
  stderr,
  version,
  defaultFile: existsSync(shipped) ? shipped : undefined,
  startGateway,
  describeRoutes,
  driftReport,
  explain,
  reloadOnChange: (gateway, files, pollMs) => {
    watchFiles({ files, settleMs: 200, pollMs }, () => gateway.reload())
  },
  stopOnSignal: (gateway, graceMs) => stopOnSignal(gateway, graceMs, stderr),
})
// A start that failed half-way has opened servers, which would keep the process.
if (end === exitCodes.notStarted.code) process.exit(end)
if (end !== 'running') process.exitCode = end
