// Builds the site before the suites ask for it, which takes a minute of network and disk: CI does so beside its checks.
import { buildSite } from './build-site.ts'

await buildSite()
