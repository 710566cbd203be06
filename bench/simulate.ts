import { checkCommandLine } from './command-line.ts'
import { simulationTable } from './simulation.ts'

checkCommandLine('npm run simulate')

/** `npm run simulate`: hit ratio, and load of upstreams and the store, with more instances and regions. */
for (const line of simulationTable()) console.log(line)
