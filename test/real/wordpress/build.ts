// Builds the sites before the suites ask for them, which takes a minute of network and disk: CI does so beside its checks.
import { buildStack, missingForStack } from '../../../bench/batch-stack.ts'
import { pluginsOf, reasonWithoutArchives, setOfRandomWrites, shortSets } from '../sites/archives.ts'
import { buildRealSite } from '../sites/build-real-site.ts'
import { buildSite } from './build-site.ts'

await buildSite()
if (missingForStack() === undefined) {
  await buildStack()
  if (reasonWithoutArchives() === undefined) {
    for (const set of [...shortSets, setOfRandomWrites, 'graphql']) await buildRealSite('7.1', pluginsOf(set))
  }
}
