import { Argument, type Command } from 'commander'
import type { End } from '../cli-ports.ts'
import type { InitRequest } from '../commands/init.ts'
import { forceOption, nameArgument, upstreamArgument } from '../options.ts'
import type { UpstreamUrl } from '../upstream-url.ts'
import type { Parts } from './parts.ts'

const fileSets = {
  companion: 'the plugin that tells Trellis of changes in WordPress',
  dashboards: 'of Grafana, with rules of Prometheus',
  systemd: 'a unit for this installation',
  compose: 'a WordPress behind Trellis, with Prometheus and Grafana, to try it',
} as const

type ForceOption = { readonly force?: boolean }

export const addInit = (program: Command, { ports, act }: Parts): void => {
  const init = program
    .command('init')
    .summary('write a commented configuration to ./trellis.yaml, or files of the package to a folder')
    .description(
      `Write a commented configuration to ./trellis.yaml, or files of the package to a folder.

The URL is that of the service itself. Without a word it writes for any HTTP service. Check the file with \`trellis check\`.`,
    )
    .usage('[kind] [options]')
    .addHelpText('after', '\nExample: trellis init wordpress https://blog.example')
  const write = async (request: InitRequest, force: boolean): Promise<End> =>
    (await import('../commands/init.ts')).writeInitialConfig(ports, request, force)
  const kinds = [
    ['wordpress', 'for a WordPress: its REST API is cached, its pages pass through'],
    ['open', 'for any other HTTP service'],
  ] as const
  for (const [kind, description] of kinds)
    init
      .command(kind)
      .description(description)
      .argument('[url]', 'URL of the service itself', upstreamArgument)
      .addOption(forceOption())
      .action((url: UpstreamUrl | undefined, { force = false }: ForceOption) =>
        act(() => write({ kind, url }, force)),
      )
  init
    .command('openapi')
    .description('for a service with an OpenAPI document: its operations are listed, with suggested rules')
    .argument('<file>', 'the document', nameArgument)
    .argument('[url]', 'URL of the service itself; default: the first of `servers`', upstreamArgument)
    .addOption(forceOption())
    .action((document: string, url: UpstreamUrl | undefined, { force = false }: ForceOption) =>
      act(() => write({ kind: 'openapi', document, url }, force)),
    )
  for (const name of Object.keys(fileSets) as (keyof typeof fileSets)[])
    init
      .command(name)
      .description(fileSets[name])
      .argument('<folder>', 'the folder to write to', nameArgument)
      .addOption(forceOption())
      .action((folder: string, { force = false }: ForceOption) =>
        act(async () => (await import('../commands/init-files.ts')).writeFileSet(ports, name, folder, force)),
      )
  // A word that is none of the kinds is refused with their list.
  const kind = new Argument('[kind]').choices(init.commands.map((command) => command.name()))
  init
    .addArgument(kind)
    .addOption(forceOption())
    .action((_kind: undefined, { force = false }: ForceOption) =>
      act(() => write({ kind: 'open', url: undefined }, force)),
    )
}
