import { writeFile } from 'node:fs/promises'
import { checkCommandLine } from '../../bench/command-line.ts'
import { dashboardFiles } from './dashboards.ts'

checkCommandLine('npm run dashboards')

for (const [name, text] of dashboardFiles) await writeFile(new URL(`../${name}`, import.meta.url), text)
