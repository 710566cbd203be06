import type { Command } from 'commander'
import { type CheckOptions, check, faultsOfCheck } from '../commands/check.ts'
import { start } from '../commands/start.ts'
import { configOption, demoOption, jsonOption, nameArgument, upstreamsOption } from '../options.ts'
import { type ConfigChoice, withConfig } from '../read-config.ts'
import type { Parts } from './parts.ts'

export const addStart = (program: Command, { ports, act }: Parts): void => {
  const command = program
    .command('start')
    .summary('run the gateway')
    .usage('[-c FILE | --demo [openapi FILE]]')
    .description(
      `Run the gateway.

It serves when it prints "Trellis listens on"; with Redis, /readyz is 200 some seconds later. After SIGTERM or SIGINT, /readyz is 503, requests in flight are finished, and the process ends. A second signal ends it immediately.

\`trellis start --demo openapi pets.yaml\` answers with the examples of an OpenAPI document.`,
    )
    .argument('[openapi]', 'with --demo: the demo is a document')
    .argument('[file]', 'the OpenAPI document')
    .addOption(configOption())
    .addOption(demoOption())
  command.action((kind: string | undefined, demoDocument: string | undefined, options: ConfigChoice) => {
    const isDocument = options.demo === true && kind === 'openapi' && demoDocument !== undefined
    if (kind !== undefined && !isDocument)
      command.error(
        `error: name a configuration with -c FILE, or an OpenAPI document with --demo openapi FILE, instead of '${kind}'`,
      )
    const choice = { ...options, demoDocument }
    return act(() => withConfig(ports, choice, (loaded) => start(ports, loaded, choice)))
  })
}

export const addCheck = (program: Command, { ports, act }: Parts): void => {
  const command = program
    .command('check')
    .summary('check a configuration and list all faults')
    .description(
      `Check a configuration and list all faults.

Prints FILE:LINE:COLUMN KEY: MESSAGE for each fault, and exits with 1 if there are any. With --upstreams, it also sends a few GETs to the upstream of each site service, and reports problems such as a wrong basePath, a front page that redirects to itself, or a home URL that bypasses the gateway. These also exit with 1.`,
    )
    .argument('[file]', 'the configuration, as with -c', nameArgument)
    .addOption(configOption())
    .addOption(demoOption())
    .addOption(upstreamsOption('check the upstreams too'))
    .addOption(jsonOption())
  command.action((file: string | undefined, options: ConfigChoice & CheckOptions) => {
    if (file !== undefined && (options.config !== undefined || options.demo === true))
      command.error(`error: one configuration is checked: leave out -c or --demo, or '${file}'`)
    const choice = file === undefined ? options : { config: file }
    return act(() =>
      withConfig(ports, choice, (loaded) => check(ports, loaded, options), faultsOfCheck(ports, options)),
    )
  })
}
