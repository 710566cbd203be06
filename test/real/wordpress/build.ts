// Builds the sites before the suites ask for them, which takes a minute of network and disk: CI does so beside its checks.
import { buildStack, missingForStack } from '../../../bench/batch-stack.ts'
import { isAll } from '../../support/breadth.ts'
import { daySets, pluginsOf, reasonWithoutArchives, setOfRandomWrites, shortSets } from '../sites/archives.ts'
import { buildRealSite } from '../sites/build-real-site.ts'
import { buildSite } from './build-site.ts'

await buildSite()
if (missingForStack() === undefined) {
  await buildStack()
  if (reasonWithoutArchives() === undefined) {
    const atLength = isAll ? [setOfRandomWrites, ...Object.values(daySets)] : [daySets.shop]
    const sets = new Set([...shortSets, ...atLength])
    for (const set of sets) await buildRealSite('7.1', pluginsOf(set))
  }
}
