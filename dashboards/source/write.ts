import { writeFile } from 'node:fs/promises'
import { dashboardFiles } from './dashboards.ts'

for (const [name, text] of dashboardFiles) await writeFile(new URL(`../${name}`, import.meta.url), text)
