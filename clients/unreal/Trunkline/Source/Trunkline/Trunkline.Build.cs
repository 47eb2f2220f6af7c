using System.IO;
using UnrealBuildTool;

public class Trunkline : ModuleRules
{
    public Trunkline(ReadOnlyTargetRules Target) : base(Target)
    {
        PCHUsage = PCHUsageMode.UseExplicitOrSharedPCHs;
        CppStandard = CppStandardVersion.Cpp17;
        PublicDependencyModuleNames.AddRange(new[] { "Core", "CoreUObject", "Engine" });
        // Where the two files of clients/cpp are copied to.
        PrivateIncludePaths.Add(Path.Combine(ModuleDirectory, "ThirdParty"));
        if (Target.Platform == UnrealTargetPlatform.Win64)
        {
            PublicSystemLibraries.Add("ws2_32.lib");
        }
    }
}
