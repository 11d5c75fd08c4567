// Asks a document questions: usage: ask MODEL.gguf INDEX.stair [--callers N] QUESTION...
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading.Tasks;
using Stair;

internal static class Ask
{
    private static int Main(string[] args)
    {
        using (var output = Utf8(Console.OpenStandardOutput()))
        using (var errors = Utf8(Console.OpenStandardError()))
        {
            int callers = 0;
            bool concurrent = args.Length > 2 && args[2] == "--callers";
            var questions = args.Skip(concurrent ? 4 : 2).ToArray();
            if (questions.Length == 0 || (concurrent && !IsCount(args[3], out callers)))
            {
                errors.WriteLine("usage: ask MODEL.gguf INDEX.stair [--callers N] QUESTION...");
                return 2;
            }
            try
            {
                return Run(output, args[0], args[1], callers, questions);
            }
            catch (StairException error)
            {
                errors.WriteLine("error: " + error.Name + ": " + error.Message);
                return 1;
            }
        }
    }

    private static int Run(TextWriter output, string modelPath, string indexPath, int callers, string[] questions)
    {
        using (var model = StairModel.Open(modelPath))
        using (var index = StairIndex.Open(indexPath))
        using (var retriever = new StairRetriever(model, index, new RetrieverOptions { Deterministic = true }))
        {
            var answers = new List<RetrieveResult>();
            foreach (var question in questions)
            {
                var answer = retriever.Retrieve(question);
                answers.Add(answer);
                Print(output, question, answer);
            }
            if (callers == 0)
            {
                return 0;
            }

            // Each caller asks every question; all of them at the same time, on the one retriever.
            var tasks = Enumerable.Range(0, callers).Select(_ => CountDifferent(retriever, questions, answers));
            int differ = Task.WhenAll(tasks).GetAwaiter().GetResult().Sum();
            output.WriteLine(
                callers + " callers, " + questions.Length + " answers each: "
                + (differ == 0 ? "all the same" : differ + " differ"));
            return differ == 0 ? 0 : 1;
        }
    }

    private static void Print(TextWriter output, string question, RetrieveResult answer)
    {
        output.WriteLine(question);
        int rank = 0;
        foreach (var hit in answer.Hits)
        {
            var identifier = hit.Number == "" ? hit.Title : hit.Number + " " + hit.Title;
            output.WriteLine(
                "  " + ++rank + ". " + identifier + "  (" + string.Join(" > ", hit.Path) + ")  " + Decimals(hit.Score));
        }
        output.WriteLine();
    }

    private static async Task<int> CountDifferent(
        StairRetriever retriever, string[] questions, List<RetrieveResult> answers)
    {
        int differ = 0;
        for (int i = 0; i < questions.Length; i++)
        {
            var answer = await retriever.RetrieveAsync(questions[i]);
            differ += Same(answer, answers[i]) ? 0 : 1;
        }
        return differ;
    }

    private static bool Same(RetrieveResult a, RetrieveResult b)
    {
        return a.Hits.Select(hit => hit.Section).SequenceEqual(b.Hits.Select(hit => hit.Section))
            && a.Hits.Select(hit => hit.LogProb).SequenceEqual(b.Hits.Select(hit => hit.LogProb));
    }

    // As C's %.3f, where a negative number keeps its sign even if it rounds to zero.
    private static string Decimals(double value)
    {
        bool negative = BitConverter.DoubleToInt64Bits(value) < 0;
        return (negative ? "-" : "") + Math.Abs(value).ToString("F3", CultureInfo.InvariantCulture);
    }

    private static bool IsCount(string text, out int count)
    {
        return int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out count) && count > 0;
    }

    private static TextWriter Utf8(Stream stream)
    {
        return new StreamWriter(stream, new UTF8Encoding(false)) { NewLine = "\n", AutoFlush = true };
    }
}
