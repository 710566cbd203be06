import { parentPort, workerData } from 'node:worker_threads'
import { loadApiDocument } from './config/read-document.ts'

// The thread of src/config/read-document.ts for large documents.
parentPort?.postMessage(await loadApiDocument(workerData as string))
