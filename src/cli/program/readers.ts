import type { Command } from 'commander'
import type { End } from '../cli-ports.ts'
import { doctor } from '../commands/check.ts'
import { type ExplainOptions, explain } from '../commands/explain.ts'
import { drift, type RoutesOptions, routes } from '../commands/routes.ts'
import {
  bodyOption,
  configOption,
  demoOption,
  driftOption,
  headerOption,
  type JsonOption,
  jsonOption,
  methodArgument,
  targetArgument,
  upstreamsOption,
} from '../options.ts'
import { type ConfigChoice, type Loaded, withConfig } from '../read-config.ts'
import type { Parts } from './parts.ts'

/** The commands that read a configuration and start nothing. */
export const addReaders = (program: Command, { ports, act }: Parts): void => {
  const withLoaded = (choice: ConfigChoice, run: (loaded: Loaded) => Promise<End>): Promise<void> =>
    act(() => withConfig(ports, choice, run))
  program
    .command('doctor')
    .summary('look at the whole set-up, and say what to do')
    .description(
      `Look at the whole set-up, and say what to do.

Node, memory, workers, ports, certificates, every server of every service, Redis, and the warnings of \`trellis check\`. A line for each, the faults first; the exit code is 1 if there are any. It sends a few GETs to each upstream.`,
    )
    .addOption(configOption())
    .addOption(demoOption())
    .addOption(jsonOption())
    .action((options: ConfigChoice & JsonOption) =>
      withLoaded(options, (loaded) => doctor(ports, loaded, options)),
    )
  program
    .command('routes')
    .summary('print the route table: method, path, service, caching, batch')
    .description(
      `Print the route table: method, path, service, caching, batch.

CACHED is the ttl of the rule, or - for a route that is not cached; BATCHABLE says whether a batch may contain it. With --upstreams, it adds the routes that the index of each site upstream announces (of plugins). With --drift, it prints how these indexes differ from the contract; the exit code is 1 if they do.`,
    )
    .addOption(configOption())
    .addOption(demoOption())
    .addOption(upstreamsOption('add the routes that upstreams announce beyond the contract'))
    .addOption(driftOption())
    .addOption(jsonOption())
    .action((options: ConfigChoice & RoutesOptions) =>
      withLoaded(options, (loaded) =>
        options.drift === true ? drift(ports, loaded, options) : routes(ports, loaded, options),
      ),
    )
  program
    .command('explain')
    .summary('explain how a request would be handled, without sending it')
    .description(
      `Explain how a request would be handled, without sending it.

Shows the route, the canonical form, the cache key, the tags and the rule, why the response is cached or not, and what a write may invalidate. Without --body the request has no body.

Example: trellis explain GET '/wp-json/wp/v2/posts?per_page=5' -H 'Cookie: theme=dark'`,
    )
    .argument('<method>', 'method of the request, e.g. GET', methodArgument)
    .argument('<url>', 'public URL or path', targetArgument)
    .addOption(configOption())
    .addOption(demoOption())
    .addOption(upstreamsOption('include the routes that upstreams announce beyond the contract'))
    .addOption(headerOption())
    .addOption(bodyOption())
    .addOption(jsonOption())
    .action((method: string, url: string, options: ConfigChoice & ExplainOptions) => {
      // Not normalised by URL: the spelling itself is explained.
      const request = { method, target: url.replace(/#.*$/s, '') }
      return withLoaded(options, (loaded) => explain(ports, loaded, request, options))
    })
}
