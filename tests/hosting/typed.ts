// Uses the client that `pillion client notes --lang typescript --output client.ts` made.
import { Notes, Pillion } from "./client.ts";

const pillion = new Pillion({ command: process.argv[2] });
const notes = new Notes(pillion);
const imported = await notes.importNotes({ count: 2 }); // `{ count: "two" }` does not compile
const listed = await notes.listNotes();
console.log(`You have these notes: ${listed.text} (${imported.text})`);
await pillion.close();
