import type { Command } from 'commander'
import { type AdminOptions, adminAddress } from '../admin-address.ts'
import type { ExitReason } from '../cli-ports.ts'
import type { AdminCommand } from '../commands/admin-commands.ts'
import {
  adminConfigOption,
  adminOption,
  jsonOption,
  type PurgeOptions,
  purgeOptions,
  sinceOption,
  targetsArgument,
  waitOption,
} from '../options.ts'
import type { Parts } from './parts.ts'

const tokenHint =
  'The token is `admin.token` of the configuration; with --admin alone, it is TRELLIS_ADMIN_TOKEN.'

const load = () => import('../commands/admin-commands.ts')

type Run = (commands: Awaited<ReturnType<typeof load>>, command: AdminCommand) => Promise<ExitReason>

/** The commands that ask the admin side of a running gateway. */
export const addAdminCommands = (program: Command, { ports, act }: Parts): void => {
  const remote = (name: string, summary: string, details: string): Command =>
    program
      .command(name)
      .summary(summary)
      .description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.\n\n${details}\n\n${tokenHint}`)
  const withShared = (command: Command): Command =>
    command.addOption(adminOption()).addOption(adminConfigOption()).addOption(jsonOption())
  const asked = ({ json = false, ...options }: AdminOptions, run: Run): Promise<void> =>
    act(async () => {
      const address = await adminAddress(ports, options)
      if (typeof address === 'string') return address
      const { stdout, stderr } = ports
      return run(await load(), { stdout, stderr, address, json })
    })
  withShared(
    remote(
      'status',
      'show the state of a running gateway',
      'Shows readiness, requests, cache and upstreams. The exit code is 1 if the gateway is not ready.',
    ),
  ).action((options: AdminOptions) => asked(options, ({ status }, command) => status(command)))
  withShared(
    remote(
      'advise',
      'show what costs hits, the worst first, and what to do about it',
      'Reads what a running gateway has counted since its start.',
    ),
  ).action((options: AdminOptions) => asked(options, ({ advise }, command) => advise(command)))
  withShared(
    remote(
      'reload',
      'make a running gateway read its configuration again',
      'Ends when the new configuration is in force in all processes, and prints what has changed; or prints why it was refused, and exits with 1: the earlier configuration stays in force.',
    ),
  ).action((options: AdminOptions) =>
    asked(options, async (_, command) => (await import('../commands/reload.ts')).reload(command)),
  )
  const purge = remote(
    'purge',
    'remove stored responses of a running gateway',
    `Removes the responses of the URLs, with one of the tags, below the paths, or all.

Example: trellis purge --url '/wp-json/wp/v2/posts?per_page=5' --prefix /shop --dry-run`,
  ).usage('{--url URL | --tag TAG | --prefix PATH}... | --all [options]')
  for (const option of purgeOptions()) purge.addOption(option)
  withShared(purge).action((options: AdminOptions & PurgeOptions) => {
    const { all, url, tag, prefix } = options
    if ((all ?? url ?? tag ?? prefix) === undefined)
      purge.error('error: name what to remove with --url, --tag, --prefix or --all')
    return asked(options, (commands, command) => commands.purge(command, options))
  })
  withShared(
    remote(
      'warm',
      'make a running gateway fetch URLs into its cache',
      'The gateway fetches them in the background, without a credential, at the pace of `cache.warm`. With --wait, it prints the URLs that are not stored then, with the reasons, and exits with 1 if there are any.',
    )
      .argument('<url...>', 'public URLs or paths, 1 to 1000', targetsArgument)
      .addOption(waitOption()),
  ).action((urls: readonly string[], options: AdminOptions & { readonly wait?: boolean }) =>
    asked(options, ({ warm }, command) => warm(command, urls, options.wait === true)),
  )
  withShared(
    remote(
      'changed',
      'begin a build of a site generator, and list what has changed since the one before',
      'Prints the id that the generator sends as Trellis-Build with its reads, and the URLs whose responses are others than those that the build of --since was sent.',
    ).addOption(sinceOption()),
  ).action((options: AdminOptions & { readonly since?: string }) =>
    asked(options, ({ changed }, command) => changed(command, options.since)),
  )
}
