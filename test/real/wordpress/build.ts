// Builds the sites before the suites ask for them, which takes a minute of network and disk: CI does so beside its checks.
import { buildStack, missingForStack } from '../../../bench/batch-stack.ts'
import { buildSite } from './build-site.ts'

await buildSite()
if (missingForStack() === undefined) await buildStack()
